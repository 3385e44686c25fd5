"""Predicts from a release with NumPy alone: Served(folder).top("c7", 3). Covariances and items alike need dpmf."""

import json
from pathlib import Path

import numpy as np

RIDGES = dict.fromkeys(["dpals", "dpam", "dpps_mf", "hua_mf"], "user_ridge")  # these have users' means, too
RIDGES |= {"own_pattern": "own_ridge", "own_regression": "", "dp_sgd": "", "pg_mf": "regularization"}


class Served:
    def __init__(self, folder):
        said = json.loads(Path(folder, "model.json").read_text("utf-8"))
        data, self.method, self.name = said["dataset"], said["algorithm"], said["algorithm"]["algorithm"]
        self.scale, self.to_stars = (data["minimum"], data["maximum"]), data["to_stars"]
        with np.load(Path(folder, "model.npz"), allow_pickle=False) as file:
            arrays = {key.removeprefix("model."): file[key] for key in file.files}
        if "alike" in said["kind"] or "weight" in arrays or ("factors" in arrays and self.name not in RIDGES):
            raise SystemExit(f"{folder}: {said['name']}, of kind `{said['kind']}`, needs dpmf")
        ids = [arrays.pop(key, np.empty(0)).tolist() for key in ("item_ids", "user_ids")]
        self.items, self.users = ({str(each): at for at, each in enumerate(known)} for known in ids)
        self.arrays = {key: each[..., 0] if each.dtype.kind == "f" else each for key, each in arrays.items()}

    def predict(self, user, own=()):
        """Returns (n_items,) predictions, not clipped. `own` has the user's own ratings, {item: rating}."""
        a, method, n, at = self.arrays, self.method, len(self.items), self.users.get(str(user))
        least, span = self.scale[0], self.scale[1] - self.scale[0]
        low, width = (0, 1) if "fallback" in a else (1, 4) if self.to_stars else (least, span)
        own = {self.items[str(item)]: value for item, value in dict(own).items() if str(item) in self.items}
        j, r = np.array([*own], int), low + width * (np.array([*own.values()], float) - least) / span
        rows = a.get("factors", a.get("averages", a.get("items"))).reshape(n, -1).astype(float)
        q, every, beta = rows[:, :-1], rows[:, -1], method["effects"]["beta_u"]
        x, mean = r - every[j], a.get("mean", 0.0)
        if "users" in a:
            row = np.atleast_1d(a["users"].mean(axis=0, dtype=float) if at is None else a["users"][at])
            every = every + row[-1] + q @ row[:-1]
        elif "neighbours" in a:
            near, above = a["neighbours"], np.bincount(j, x, n + 1)  # the last is of −1, which fills up
            s = a["similarities"] * (np.isin(near, j) & (near != np.arange(n)[:, None]))
            every = every + (s * above[near]).sum(axis=1) / np.maximum(abs(s).sum(axis=1), 1e-30)
        else:
            ridge = RIDGES.get(self.name, "user_ridge")
            if ridge == "user_ridge" and method.get("centring") != "overall":
                total = np.clip(x, -width, width).sum() + beta * np.clip(a.get("residual", 0), -width, width)
                mean = total / max(len(j) + beta, 1e-9)
            ridge = method.get(ridge, 1.0) * (len(j) if "mean" in a else 1) or 1e-9
            p = np.linalg.solve(q[j].T @ q[j] + ridge * np.eye(q.shape[1]), q[j].T @ (x - mean))
            every = every + mean + q @ p
        if "fallback" in a:
            known = at is not None and a["users_known"][at] if "users" in a else len(j) > 0
            every = np.where(a["known_items"] & known, every, a["fallback"])
        return least + span * (every - low) / width

    def top(self, user, n, own=(), seen=()):
        """Returns the user's n best items, of those not in `own` or `seen`, with clipped predictions."""
        found, names = self.predict(user, own), np.array([*self.items])
        order = np.argsort(-found, kind="stable")
        best = order[~np.isin(names[order], [str(item) for item in (*own, *seen)])][:n]
        return list(zip(names[best].tolist(), np.clip(found[best], *self.scale).tolist(), strict=True))
