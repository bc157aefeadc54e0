"""Every promise that can be asked for, and what becomes of it: a rule that bounds its cost, or a
refusal.

cells      all combinations of channel, program, unit, adjacency, kind of promise and options
examples   a small study of each program, to ask about
asking     one cell put to the real code: what it would release, or why it refuses
rules      from releases to the rules that bound their cost, each with its proof
page       docs/promises.md

`python -m tacit.promises` prints the page.
"""
