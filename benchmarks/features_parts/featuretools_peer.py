"""The peer's side, run by a Python that has featuretools: it cannot import tacit.

    featuretools_peer.py FOLDER INSTANCES DAYS …

reads events.parquet and instances.parquet, computes the first INSTANCES of them over windows of so
many days, and writes seconds.txt (processor time) and one features_DAYS.parquet for each window.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import featuretools as ft
import pandas as pd
from featuretools import primitives as ready

NUMBERS = ("price", "length", "wait")
PRIMITIVES = (ready.Sum, ready.Mean, ready.Min, ready.Max, ready.Std, ready.Last, ready.Trend)


def main(folder: Path, instances: int, windows: list[int]) -> None:
    entities = _entities(folder)
    cutoffs = pd.read_parquet(folder / "instances.parquet").iloc[:instances]
    definitions = _definitions(entities)
    seconds = 0.0
    for days in windows:
        start = time.process_time()
        matrix = ft.calculate_feature_matrix(
            definitions,
            entities,
            cutoff_time=cutoffs,
            training_window=f"{days} days",
            cutoff_time_in_index=True,
        )
        seconds += time.process_time() - start
        in_order = matrix.loc[pd.MultiIndex.from_frame(cutoffs)]
        in_order.astype({"MODE(rides.city)": str}).to_parquet(
            folder / f"features_{days}.parquet", index=False
        )
    (folder / "seconds.txt").write_text(repr(seconds))


def _entities(folder: Path) -> ft.EntitySet:
    events = pd.read_parquet(folder / "events.parquet")
    entities = ft.EntitySet("trips")
    entities.add_dataframe(
        dataframe_name="rides",
        dataframe=events,
        index="ride",
        time_index="time",
        logical_types={"city": "Categorical", "car": "Integer", **dict.fromkeys(NUMBERS, "Double")},
    )
    cars = pd.DataFrame({"car": range(int(events["car"].max()) + 1)})
    entities.add_dataframe(dataframe_name="cars", dataframe=cars, index="car")
    return entities.add_relationship("cars", "car", "rides", "car")


def _definitions(entities: ft.EntitySet) -> list[ft.Feature]:
    def of(primitive: type, *fields: str) -> ft.Feature:
        base = [ft.Feature(entities["rides"].ww[name]) for name in fields]
        return ft.Feature(base, parent_dataframe_name="cars", primitive=primitive)

    made = [of(ready.Count, "ride"), of(ready.TimeSinceLast, "time")]
    for primitive in PRIMITIVES:
        more = ("time",) if primitive is ready.Trend else ()
        made += [of(primitive, field, *more) for field in NUMBERS]
    return [*made, of(ready.NumUnique, "city"), of(ready.Mode, "city")]


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), [int(days) for days in sys.argv[3:]])
