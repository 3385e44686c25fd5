"""A small shop: ratings in a CSV with its own column names, and a config of methods to release."""

from pathlib import Path

from tests.conftest import make_ratings

CONFIG = """\
dataset:
  kind: csv
  name: my-shop
  path: ratings.csv
  columns: {user: customer, item: sku, rating: stars}
  scale: {minimum: 1, maximum: 5, step: 1}
folds: 3
runs: 1
epsilons: [1]
algorithms:
  - algorithm: pge
  - {algorithm: pge, label: "PGE, hidden", neighbours: unbounded, mode: corrected}
  - {algorithm: pals, neighbours: unbounded}
  - {algorithm: mm_averages, neighbours: user, mode: corrected}
"""


def make_shop(folder: Path) -> None:
    """`my-shop.yaml` and `ratings.csv`: customers c0 to c59, articles a0 to a39."""
    ratings = make_ratings()
    rows = zip(ratings.users.tolist(), ratings.items.tolist(), ratings.values.tolist(), strict=True)
    lines = [f"c{user},a{item},{value:g}" for user, item, value in rows]
    (folder / "ratings.csv").write_text("\n".join(["customer,sku,stars", *lines]) + "\n")
    (folder / "my-shop.yaml").write_text(CONFIG)
