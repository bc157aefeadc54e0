"""The events that the importer `oulad` makes."""

from __future__ import annotations

from tacit.personal.events import EventType, Kind

__all__ = [
    "CLICKS",
    "DEADLINE",
    "EARLY_CLICKS",
    "ENROLMENT",
    "REGISTRATION",
    "RESULT",
    "SUBMISSION",
    "TYPES",
    "UNREGISTRATION",
]

COURSE: dict[str, Kind] = {"module": "category", "presentation": "category"}
TAKEN: dict[str, Kind] = {"student": "category", **COURSE}
TEST: dict[str, Kind] = {"assessment": "category", "form": "category", "weight": "number"}

ENROLMENT = EventType(
    name="enrolment",
    fields={
        **TAKEN,
        "gender": "category",
        "region": "category",
        "education": "category",
        "deprivation": "category",
        "age": "category",
        "previous_attempts": "number",
        "credits": "number",
        "disability": "boolean",
    },
    about="A course begins for a student: what was known of the student then.",
    words=("course", "student", "class"),
)
RESULT = EventType(
    name="course_result",
    fields={**TAKEN, "result": "category", "passed": "boolean"},
    about="How a course ended for a student, on its last day.",
    words=("pass", "fail", "grade", "result"),
)
REGISTRATION = EventType(
    name="registration",
    fields={**TAKEN, "days_before": "number"},
    about="A student registered for a course, so many days before it began.",
    words=("register",),
)
UNREGISTRATION = EventType(
    name="unregistration",
    fields=TAKEN,
    about="A student left a course. This gives away that the result is Withdrawn.",
    words=("withdraw", "leave", "quit"),
)
DEADLINE = EventType(
    name="deadline",
    fields={**COURSE, **TEST},
    about="The day by which an assessment was to be handed in; of exams, the course's last.",
    words=("due", "exam"),
)
SUBMISSION = EventType(
    name="submission",
    fields={**TAKEN, **TEST, "score": "number", "banked": "boolean", "days_early": "number"},
    about="A student handed an assessment in, and what it scored.",
    words=("assessment", "test", "assignment", "score", "mark"),
)
CLICKS = EventType(
    name="course_clicks",
    fields={**TAKEN, "site": "category", "activity": "category", "clicks": "number"},
    about="A student's clicks on one site of a course in a day.",
    words=("click", "study", "visit", "activity"),
)
EARLY_CLICKS = EventType(
    name="early_clicks",
    fields={**TAKEN, "clicks": "number", "visits": "number"},
    about="A student's clicks on all sites of a course before it began.",
    words=("preparation",),
)
TYPES = (
    ENROLMENT,
    RESULT,
    REGISTRATION,
    UNREGISTRATION,
    DEADLINE,
    SUBMISSION,
    CLICKS,
    EARLY_CLICKS,
)
