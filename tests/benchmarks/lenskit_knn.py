"""LensKit's item kNN in its own environment: one process that answers on its standard output.

    python lenskit_knn.py RATINGS.npz       for each line "n" of standard input: fits, predicts the first n pairs,
                                            and prints {"seconds": … of CPU, "rmse": …}

This is a script for a Python that has LensKit and not dpmf (`tests/benchmarks/peers.py`, `lenskit_knn`). It calls the
scorer directly, once for each user, which saves LensKit the time of its pipeline. A pair without neighbours (NaN) is
predicted by the item's mean.
"""

import json
import sys
import time
from itertools import pairwise

import numpy as np
import pandas as pd
from lenskit.data import ItemList, RecQuery, from_interactions_df
from lenskit.knn import ItemKNNScorer


def main() -> None:
    """Answers until standard input ends."""
    arrays = np.load(sys.argv[1])
    frame = pd.DataFrame({part: arrays[f"train_{part}s"] for part in ("user", "item", "rating")})
    data = from_interactions_df(frame, user_col="user", item_col="item", rating_col="rating")
    users, items, ratings = (arrays[f"test_{part}"] for part in ("users", "items", "ratings"))
    means = frame.groupby("item")["rating"].mean()
    fallback = means.reindex(items).fillna(frame["rating"].mean()).to_numpy()
    for line in sys.stdin:
        asked = int(line)
        begin = time.process_time()
        scorer = ItemKNNScorer(max_nbrs=20)
        scorer.train(data)
        predictions = np.empty(asked)
        bounds = np.flatnonzero(np.diff(users[:asked], prepend=-1, append=-1))
        for first, last in pairwise(bounds):
            query = RecQuery(user_id=users[first], user_items=data.user_row(users[first]))
            predictions[first:last] = scorer(query, ItemList(item_ids=items[first:last])).scores()
        missing = np.isnan(predictions)
        predictions[missing] = fallback[:asked][missing]
        seconds = time.process_time() - begin
        rmse = float(np.sqrt(np.mean((predictions - ratings[:asked]) ** 2)))
        print(json.dumps({"seconds": seconds, "rmse": rmse}), flush=True)


if __name__ == "__main__":
    main()
