"""`tacit me instances|features|train|predict|ask`: from events to answers."""

from __future__ import annotations

import csv
from pathlib import Path

import click

from tacit.cli.me_store import moment_of, now_moment, opened, pairs_of, store_options
from tacit.cli.output import json_option, people, print_document
from tacit.errors import UsageError

__all__ = ["ask", "features", "instances", "predict", "train"]

problem_argument = click.argument("problem")
recorded_option = click.option(
    "--now", help="Everything until then is recorded; by default until the last event."
)
now_option = click.option("--now", help="As of this time, instead of the clock: 2024-01-31T18:00.")


@click.command()
@problem_argument
@click.option("--limit", default=20, show_default=True, help="How many to show; the latest.")
@recorded_option
@store_options
@json_option
def instances(problem: str, limit: int, now: str | None, store: Path | None, as_json: bool) -> None:
    """Show the examples that PROBLEM (a file, or a name you keep) makes of your events."""
    from tacit.cli.me_learn_view import instances_document, print_instances
    from tacit.personal.pipeline import instances_of, problem_named

    with opened(store) as held:
        asked = problem_named(held, problem)
        found, zone = instances_of(held, asked, moment_of(now, held.zone)), held.zone
    if as_json:
        print_document(instances_document(asked, found, zone, limit))
    else:
        print_instances(people(), asked, found, zone, limit)


@click.command()
@problem_argument
@click.option("--limit", default=10, show_default=True, help="How many rows to show; the latest.")
@click.option("--out", type=click.Path(path_type=Path), help="Write the whole matrix as CSV here.")
@recorded_option
@store_options
@json_option
def features(
    problem: str,
    limit: int,
    out: Path | None,
    now: str | None,
    store: Path | None,
    as_json: bool,
) -> None:
    """Show the features of PROBLEM: what is known of each example before its cut-off."""
    from tacit.cli.me_learn_view import features_document, matrix_rows, print_features
    from tacit.personal.pipeline import matrix_from, problem_named

    with opened(store) as held, people(as_json=True).status("computing features …"):
        asked = problem_named(held, problem)
        matrix, zone = matrix_from(held, asked, moment_of(now, held.zone)), held.zone
    if out is not None:
        with out.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows(matrix_rows(matrix, zone))
    if as_json:
        print_document(features_document(matrix, zone, limit))
    else:
        print_features(people(), matrix, zone, limit)


@click.command()
@problem_argument
@click.option("--plot", type=click.Path(path_type=Path), help="Draw the report as a PNG here.")
@click.option("--seed", default=0, show_default=True, help="Of the models' own chances.")
@recorded_option
@store_options
@json_option
def train(
    problem: str,
    plot: Path | None,
    seed: int,
    now: str | None,
    store: Path | None,
    as_json: bool,
) -> None:
    """Learn PROBLEM (a file, or a name you keep) from your own past, and keep the model.

    It is tested on what came last, which nothing in it has seen.
    """
    from tacit.cli.me_learn_view import print_report, report_document
    from tacit.personal.learning.picture import draw_report
    from tacit.personal.pipeline import problem_named, train_and_keep

    with opened(store) as held:
        asked = problem_named(held, problem)
        with people(as_json=True).status("learning, in the order of time …"):
            trained = train_and_keep(held, asked, moment_of(now, held.zone), seed)
    if plot is not None:
        draw_report(trained, plot)
    if as_json:
        print_document(report_document(asked, trained, plot))
    else:
        print_report(people(), asked, trained)


@click.command()
@click.argument("name")
@click.option("--at", help="Of an example that is not recorded yet: 2024-02-01T08:00.")
@click.option(
    "--know", multiple=True, metavar="FIELD=VALUE", help="What is known of it beforehand."
)
@recorded_option
@store_options
@json_option
def predict(
    name: str,
    at: str | None,
    know: tuple[str, ...],
    now: str | None,
    store: Path | None,
    as_json: bool,
) -> None:
    """What the model NAME says of the examples whose answer is not known yet."""
    from tacit.cli.me_learn_view import predictions_document, print_predictions
    from tacit.personal.pipeline import Imagined, kept_model, predict_with, problem_named

    with opened(store) as held, people(as_json=True).status("predicting …"):
        trained, asked = kept_model(held, name), problem_named(held, name)
        moment = moment_of(at, held.zone)
        imagined = None if moment is None else Imagined(moment, pairs_of(know, "FIELD=VALUE"))
        if moment is None and know:
            raise UsageError("--know is said of one example: give its time with --at.")
        _, said = predict_with(held, asked, trained, moment_of(now, held.zone), imagined)
    if as_json:
        print_document(predictions_document(asked, trained, said))
    else:
        print_predictions(people(), asked, trained, said)


@click.command()
@click.argument("question", nargs=-1, required=True)
@click.option("--choose", type=int, help="Take this alternative instead of the first reading.")
@click.option("--yes", is_flag=True, help="Answer without asking whether it was understood.")
@click.option("--save", type=click.Path(path_type=Path), help="Write the problem understood here.")
@now_option
@store_options
@json_option
def ask(
    question: tuple[str, ...],
    choose: int | None,
    yes: bool,
    save: Path | None,
    now: str | None,
    store: Path | None,
    as_json: bool,
) -> None:
    """Ask a QUESTION about your own life, in plain words, and see how it was understood.

    How likely am I to pass the test tomorrow? How much will I spend next week?
    """
    from tacit.cli.me_ask import asked_and_answered

    with opened(store) as held:
        document = asked_and_answered(
            held,
            " ".join(question),
            now_moment(now, held.zone),
            choose,
            yes or as_json,
            as_json,
            save,
        )
    if as_json:
        print_document(document)
