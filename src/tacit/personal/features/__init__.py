"""Features: a small language that says what is known of an instance, and the engine behind it.

Read `nodes.py` (what can be said), `language.py` (how it is written), `engine.py` (how it is
computed for all instances at once).
"""
