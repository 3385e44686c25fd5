"""Features of users and items that follow from who rated what, if that is public, and their Gram matrices."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array
from scipy.sparse.linalg import svds

from dpmf_cli.core.ratings import UserMajor
from dpmf_cli.kernels.factors import Side
from dpmf_cli.kernels.symmetric import with_fixed_signs

SMALL = 64
"""Patterns with at most this many users or items are decomposed densely."""

LEAST_SPREAD = 1e-3
"""The least deviation by which logarithms of counts are divided. Logarithms that are nearer together tell nothing."""

Spectrum = tuple[NDArray[np.float64], NDArray[np.float64]]
"""Eigenvalues (rows, k), none negative, and eigenvectors (rows, k, k) of each row's Gram matrix."""


@dataclass(frozen=True)
class Pattern:
    """Who rated what, A (n_users, n_items) of 0 and 1, and features that follow from it.

    D_u and D_i are the diagonal matrices of counts. The leading k singular triples of D_u^−½·A·D_i^−½ = U·S·Vᵀ give

        users   rows of U·S, each divided by its norm
        items   rows of V·S, each divided by its norm

    A user or an item without ratings has features 0. Nothing here depends on a rating's value.

    rated    A by user; users (n_users, k), items (n_items, k)
    """

    rated: csr_array
    users: NDArray[np.float64]
    items: NDArray[np.float64]

    @classmethod
    def of(cls, pairs: UserMajor, k: int) -> "Pattern":
        """The pattern of all ratings, with k features. Features that a small matrix does not have are 0."""
        shape = pairs.n_users, pairs.n_items
        rated = csr_array((np.ones(len(pairs)), pairs.items, pairs.user_starts), shape=shape)
        by_user, by_item = (
            1 / np.sqrt(np.maximum(counts, 1)) for counts in (pairs.user_counts, pairs.item_counts)
        )
        left, singular, right = _leading(diags_array(by_user) @ rated @ diags_array(by_item), k)
        return cls(rated, _unit_rows(left * singular), _unit_rows(right * singular))

    def first(self, k: int) -> "Pattern":
        """The same pattern with the first k features, divided by their norm again."""
        return Pattern(self.rated, _unit_rows(self.users[:, :k]), _unit_rows(self.items[:, :k]))

    def covariates(self, side: Side, counts: NDArray[np.int64], features: int) -> NDArray[np.float64]:
        """(rows, 2 + features) the covariates on which averages of a side are regressed.

        They are 1, the logarithm of the counts in units of its deviation, and the first features. For a row without
        ratings all but the 1 are 0, so its average is that of all rows.
        """
        rated = counts > 0
        logarithms = np.log1p(counts)
        known = logarithms[rated] if rated.any() else np.zeros(1)
        activity = (logarithms - known.mean()) / max(float(known.std()), LEAST_SPREAD)
        own = self.users if side == "users" else self.items
        return np.column_stack([np.ones(len(counts)), np.where(rated, activity, 0.0), own[:, :features]])

    @cached_property
    def gram_of_users(self) -> NDArray[np.float64]:
        """(n_users, k, k) Σ y_i·y_iᵀ over the items that each user rated; y_i are the items' features."""
        return _grams(self.rated, self.items)

    @cached_property
    def of_users(self) -> Spectrum:
        """The spectrum of `gram_of_users`."""
        return _spectrum(self.gram_of_users)

    @cached_property
    def of_items(self) -> Spectrum:
        """The spectrum of Σ x_u·x_uᵀ over the users who rated each item; x_u are the users' features."""
        return _spectrum(_grams(self.rated.T.tocsr(), self.users))

    @cached_property
    def of_pairs(self) -> Spectrum:
        """The spectrum, with one row, of Σ z·zᵀ over all ratings, z = x_u ⊗ y_i: Σ_u x_u·x_uᵀ ⊗ Σ_i y_i·y_iᵀ."""
        k = self.users.shape[1]
        outer = (self.users[:, :, None] * self.users[:, None]).reshape(-1, k * k)
        both = (outer.T @ self.gram_of_users.reshape(-1, k * k)).reshape(k, k, k, k)
        return _spectrum(both.transpose(0, 2, 1, 3).reshape(1, k * k, k * k))


def _leading(
    matrix: csr_array, k: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """U (n, k), S (k,), V (m, k) of the leading singular triples, the largest first; 0 if there are fewer than k."""
    rank = min(matrix.shape)
    if matrix.nnz == 0:  # Lanczos fails on a matrix of zeros
        return np.zeros((matrix.shape[0], k)), np.zeros(k), np.zeros((matrix.shape[1], k))
    if rank <= max(SMALL, 2 * k):
        left, singular, right = np.linalg.svd(matrix.toarray(), full_matrices=False)
    else:
        left, singular, right = svds(matrix, k, v0=np.cos(np.arange(rank)))  # any start, always the same
    order = np.argsort(-singular, kind="stable")[:k]
    signed = with_fixed_signs(right[order].T)
    turned = left[:, order] * np.sign(np.einsum("ij,ij->j", signed, right[order].T))
    padding = (0, k - len(order))
    return (
        np.pad(turned, ((0, 0), padding)),
        np.pad(singular[order], padding),
        np.pad(signed, ((0, 0), padding)),
    )


def _unit_rows(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Each row divided by its norm. Rows that are 0 up to rounding become 0."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.where(lengths > 1e-9, rows / np.maximum(lengths, 1e-9), 0.0)


def _grams(rated: csr_array, features: NDArray[np.float64]) -> NDArray[np.float64]:
    """(rows, k, k) Σ z·zᵀ over the ratings of each row; z (k,) are the features of the other side."""
    k = features.shape[1]
    first, second = np.tril_indices(k)
    grams = np.empty((rated.shape[0], k, k))
    grams[:, first, second] = grams[:, second, first] = rated @ (features[:, first] * features[:, second])
    return grams


def _spectrum(grams: NDArray[np.float64]) -> Spectrum:
    values, vectors = np.linalg.eigh(grams)
    return np.maximum(values, 0), vectors
