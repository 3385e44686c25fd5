"""The data sets that dpmf knows by name.

Sources of the figures: the publishers' READMEs; Friedman et al. 2016, table 2, for the mean and variance of
MovieLens 10M and Netflix; our own counts of verified files for the rest. Items are those with a rating.
The users and items that the paper prints differently (ML-1M, ML-10M) are its largest ids; `dpmf datasets
info` shows both.
"""

from dpmf_cli.datasets.entry import (
    CatalogEntry,
    Content,
    Counts,
    Download,
    IndexPackage,
    Licence,
    SourcePart,
    TwinShape,
)
from dpmf_cli.errors import DpmfError, did_you_mean
from dpmf_cli.ratings import Scale

_GROUPLENS = "files.grouplens.org/datasets/movielens"
_MOVIELENS_LICENCE = (
    "MovieLens (GroupLens, University of Minnesota): free for research; no endorsement may be stated or "
    "implied; cite the data set; no redistribution and no commercial use without permission."
)
_MOVIELENS_CITATION = (
    "F. Maxwell Harper and Joseph A. Konstan. 2015. The MovieLens Datasets: History and Context. "
    "ACM Transactions on Interactive Intelligent Systems 5(4), article 19. doi:10.1145/2827872"
)
_NETFLIX_LICENCE = Licence(
    "Netflix Prize: for research only; no endorsement may be stated or implied; acknowledge its use; no "
    "redistribution and no commercial use without permission. Netflix has withdrawn its own copy.",
    "https://archive.org/details/nf_prize_dataset.tar",
)
_NETFLIX_CITATION = "James Bennett and Stan Lanning. 2007. The Netflix Prize. KDD Cup and Workshop 2007."

WHOLE_STARS = Scale(1.0, 5.0, 1.0)
HALF_STARS = Scale(0.5, 5.0, 0.5)


def _archives(key: str, *others: str) -> tuple[str, ...]:
    """The names under which an archive, or a folder, of data set `key` is looked for."""
    return tuple(dict.fromkeys((f"{key}.zip", *others, f"{key}.tar.gz", f"{key}.tgz", f"{key}.tar", key)))


def _grouplens(name: str, digest: str) -> tuple[Download, ...]:
    """GroupLens by TLS and, as its certificate lapsed in 2026, without: the digest decides, not the road."""
    return tuple(Download(f"{scheme}://{_GROUPLENS}/{name}", name, digest) for scheme in ("https", "http"))


def _movielens_licence(name: str) -> Licence:
    return Licence(_MOVIELENS_LICENCE, f"https://{_GROUPLENS}/{name}")


def _jester_part(number: int, archive: str, sheet: str) -> SourcePart:
    """One of Jester's three sheets. Its home moves, so copies kept by the Internet Archive follow it."""
    name = f"jester_dataset_1_{number}.zip"
    home = "eigentaste.berkeley.edu/dataset"
    urls = (
        f"https://{home}/{name}",
        f"https://{home}/archive/{name}",
        f"https://web.archive.org/web/20260301101947id_/https://{home}/{name}",
        f"https://web.archive.org/web/20250409222630id_/https://{home}/archive/{name}",
    )
    return SourcePart(
        names=(name, *_archives("jester-1")),
        contents=(Content(f"jester-data-{number}.xls", "jester", frozenset({sheet})),),
        digests=frozenset({archive}),
        mirrors=tuple(Download(url, name, archive) for url in urls),
    )


_ML_100K = CatalogEntry(
    key="ml-100k",
    title="MovieLens 100K",
    scale=WHOLE_STARS,
    parts=(
        SourcePart(
            names=(*_archives("ml-100k"), "ml-100k.inter", "recbole-1.2.1-py3-none-any.whl"),
            contents=(
                Content(
                    "u.data",
                    "u.data",
                    frozenset({"sha256:06416e597f82b7342361e41163890c81036900f418ad91315590814211dca490"}),
                ),
                Content(
                    "ml-100k.inter",
                    "inter",
                    frozenset({"sha256:4edb74e2a81178c2ba9ff381495f754f996c4aea351b1272ca36b43da0935eff"}),
                ),
            ),
            digests=frozenset({"sha256:50d2a982c66986937beb9ffb3aa76efe955bf3d5c6b761f4e3a7cd717c6a3229"}),
            mirrors=(
                *_grouplens(
                    "ml-100k.zip", "sha256:50d2a982c66986937beb9ffb3aa76efe955bf3d5c6b761f4e3a7cd717c6a3229"
                ),
                IndexPackage(
                    requirement="recbole==1.2.1",
                    release="sha256:9c9948202011f37eb0a7c6768129313f00d6403ad221ec940d5e2d5d5f33a407",
                    wheel=True,
                    member="ml-100k.inter",
                    filename="ml-100k.inter",
                    digest="sha256:4edb74e2a81178c2ba9ff381495f754f996c4aea351b1272ca36b43da0935eff",
                ),
            ),
        ),
    ),
    expected=Counts(943, 1_682, 100_000, 3.52986, 1.26713),
    licence=_movielens_licence("ml-100k-README.txt"),
    citation=_MOVIELENS_CITATION,
    homepage="https://grouplens.org/datasets/movielens/100k/",
    shape=TwinShape(least_per_user=20, taste_share=0.16),
)

_ML_1M_ZIP = "sha256:a6898adb50b9ca05aa231689da44c217cb524e7ebd39d264c56e2832f2c54e20"
_ML_1M = CatalogEntry(
    key="ml-1m",
    title="MovieLens 1M",
    scale=WHOLE_STARS,
    parts=(
        SourcePart(
            names=(*_archives("ml-1m"), "scikit_rec-0.3.0.tar.gz"),
            contents=(
                Content(
                    "ratings.dat",
                    "dat",
                    frozenset({"sha256:506d64ca44484487c11dc2d9a28de5c54948213e6b96285e298afe28d6ea4e0f"}),
                ),
            ),
            nested=("ml-1m.zip",),
            digests=frozenset({_ML_1M_ZIP}),
            mirrors=(
                *_grouplens("ml-1m.zip", _ML_1M_ZIP),
                IndexPackage(
                    requirement="scikit_rec==0.3.0",
                    release="sha256:949b0ea7b79047b85e49d08466c49837fb74dd1f7d61ce6557f4caf6d680f7fd",
                    wheel=False,
                    member="ml-1m.zip",
                    filename="ml-1m.zip",
                    digest=_ML_1M_ZIP,
                ),
            ),
        ),
    ),
    expected=Counts(6_040, 3_706, 1_000_209, 3.58156, 1.24792),
    licence=_movielens_licence("ml-1m-README.txt"),
    citation=_MOVIELENS_CITATION,
    homepage="https://grouplens.org/datasets/movielens/1m/",
    shape=TwinShape(
        user_spread=1.05,
        item_spread=1.3,
        least_per_user=20,
        item_share=0.24,
        user_share=0.12,
        taste_share=0.13,
    ),
)

_ML_10M_ZIP = "sha256:813c411ccb6122564edfe752e7f80c4dcc5aa25fa94c93622f6877a7ba252862"
_ML_10M = CatalogEntry(
    key="ml-10m",
    title="MovieLens 10M",
    scale=HALF_STARS,
    parts=(
        SourcePart(
            names=(*_archives("ml-10m"), "ml-10M100K"),
            contents=(Content("ratings.dat", "dat", frozenset({"md5:3f317698625386f66177629fa5c6b2dc"})),),
            digests=frozenset({_ML_10M_ZIP}),
            mirrors=_grouplens("ml-10m.zip", _ML_10M_ZIP),
        ),
    ),
    expected=Counts(69_878, 10_677, 10_000_054, 3.51242, 1.1245),
    licence=_movielens_licence("ml-10m-README.html"),
    citation=_MOVIELENS_CITATION,
    homepage="https://grouplens.org/datasets/movielens/10m/",
    shape=TwinShape(user_spread=1.2, item_spread=1.9, least_per_user=20, item_share=0.22, user_share=0.13),
)

_NETFLIX_TAR = "md5:a8f23d2d76461211c6b4c0ca6df2547d"
_NETFLIX = CatalogEntry(
    key="netflix",
    title="Netflix Prize",
    scale=WHOLE_STARS,
    parts=(
        SourcePart(
            names=(
                "nf_prize_dataset.tar.gz",
                *_archives("netflix", "netflix-prize-data.zip"),
                "training_set.tar",
                "training_set",
            ),
            contents=(Content("mv_*.txt", "netflix"), Content("combined_data_[1-4].txt", "netflix")),
            nested=("training_set.tar",),
            digests=frozenset({_NETFLIX_TAR}),
            mirrors=(
                Download(
                    "https://archive.org/download/nf_prize_dataset.tar/nf_prize_dataset.tar.gz",
                    "nf_prize_dataset.tar.gz",
                    _NETFLIX_TAR,
                ),
            ),
        ),
    ),
    expected=Counts(480_189, 17_770, 100_480_507, 3.60429, 1.1777),
    licence=_NETFLIX_LICENCE,
    citation=_NETFLIX_CITATION,
    homepage="https://archive.org/details/nf_prize_dataset.tar",
    shape=TwinShape(user_spread=1.25, item_spread=2.1, item_share=0.14, user_share=0.16),
)

_JESTER_1 = CatalogEntry(
    key="jester-1",
    title="Jester 1",
    scale=Scale(-10.0, 10.0),
    parts=(
        _jester_part(
            1,
            "sha256:cb7841756ded125b15f3d95c9f8241224065e96354c132a46ae4214deeab7615",
            "sha256:3ca13556845030a9bfa6953e9dbaf0365380f7f7c465a4604eb876abb8ae8de0",
        ),
        _jester_part(
            2,
            "sha256:4d312fd824d8c8cb2c9c952a7b1fb7c00d1f5fd3ece370f7285aa701d371748b",
            "sha256:0747db68a3cc122251005ac0d289a448e99f2ad8531d2549b6110ed154772d6b",
        ),
        _jester_part(
            3,
            "sha256:7f548d3762d3506cf7cd37d8cb9e3adb67984a7da7aa2d2096d5e0b1b884758d",
            "sha256:4c092d1963b9ad0ea69d8bd863c533276519bd61d43ee95770e9f75747eac3fd",
        ),
    ),
    expected=Counts(73_421, 100, 4_136_360, 0.74215, 28.0391),
    licence=Licence(
        "Jester (Ken Goldberg, UC Berkeley): free for research; cite the paper; no redistribution.",
        "https://eigentaste.berkeley.edu/dataset/",
    ),
    citation=(
        "Ken Goldberg, Theresa Roeder, Dhruv Gupta and Chris Perkins. 2001. Eigentaste: A Constant Time "
        "Collaborative Filtering Algorithm. Information Retrieval 4(2), 133-151."
    ),
    homepage="https://eigentaste.berkeley.edu/dataset/",
    shape=TwinShape(0.5, 0.4, least_per_user=15, item_share=0.05, user_share=0.22, taste_share=0.15),
    timestamps=False,
)

_ML_LATEST_SMALL = CatalogEntry(
    key="ml-latest-small",
    title="MovieLens Latest Small (September 2018)",
    scale=HALF_STARS,
    parts=(
        SourcePart(
            names=_archives("ml-latest-small"),
            contents=(Content("ratings.csv", "ratings.csv"),),
            digests=frozenset({"sha256:696d65a3dfceac7c45750ad32df2c259311949efec81f0f144fdfb91ebc9e436"}),
            mirrors=_grouplens(
                "ml-latest-small.zip",
                "sha256:696d65a3dfceac7c45750ad32df2c259311949efec81f0f144fdfb91ebc9e436",
            ),
        ),
    ),
    expected=Counts(610, 9_724, 100_836, 3.50156, 1.08686),
    licence=_movielens_licence("ml-latest-small-README.html"),
    citation=_MOVIELENS_CITATION,
    homepage="https://grouplens.org/datasets/movielens/latest/",
    shape=TwinShape(user_spread=1.25, item_spread=1.4, least_per_user=20),
)

_ML_10M_PARTIAL = CatalogEntry(
    key="ml-10m-partial",
    title="MovieLens 10M, PARTIAL (part ra.test: ten ratings of every user; not ML-10M)",
    scale=HALF_STARS,
    parts=(
        SourcePart(
            names=_archives("ml-10m-partial"),
            contents=(
                Content(
                    "ratings.dat",
                    "dat",
                    frozenset({"sha256:c17e10f8dacbfef2649a24e46a7eb7ea4cdb6ffac1dcab90db1dec2e785018f0"}),
                ),
            ),
            digests=frozenset({"sha256:1de68b70eb9d982e8aa81bb48de697e271c464add5a2635fe95276cfaccc027b"}),
        ),
    ),
    expected=Counts(69_878, 3_326, 698_780, 3.63403, 1.15946),
    licence=_movielens_licence("ml-10m-README.html"),
    citation=_MOVIELENS_CITATION,
    homepage="https://grouplens.org/datasets/movielens/10m/",
    shape=TwinShape(user_spread=0.01, item_spread=1.9, least_per_user=10),
    timestamps=False,
)

_NETFLIX_SAMPLE = CatalogEntry(
    key="netflix-sample",
    title="Netflix Prize, SAMPLE (5K users by 5K films, ids renumbered; not the Netflix Prize set)",
    scale=WHOLE_STARS,
    parts=(
        SourcePart(
            names=_archives("netflix-sample"),
            contents=(
                Content(
                    "combined_data_1.txt",
                    "netflix",
                    frozenset({"sha256:9082f533425d32d99f544c280a8833d7f79df45f94840e23f5469e2102628cd7"}),
                ),
            ),
            digests=frozenset({"sha256:f446635ae164def24e3788012df74fae2a29f7c6b9954274c19bceb7c2ddcdd0"}),
        ),
    ),
    expected=Counts(4_953, 4_591, 305_725, 3.60341, 1.20737),
    licence=_NETFLIX_LICENCE,
    citation=_NETFLIX_CITATION,
    homepage="https://archive.org/details/nf_prize_dataset.tar",
    shape=TwinShape(user_spread=1.25, item_spread=2.1, item_share=0.14, user_share=0.16),
    timestamps=False,
)

ENTRIES: dict[str, CatalogEntry] = {
    entry.key: entry
    for entry in (
        _ML_100K,
        _ML_1M,
        _ML_10M,
        _NETFLIX,
        _JESTER_1,
        _ML_LATEST_SMALL,
        _ML_10M_PARTIAL,
        _NETFLIX_SAMPLE,
    )
}


def entry(key: str) -> CatalogEntry:
    """The catalog's entry of that key; a `DpmfError` with the nearest key where there is none."""
    try:
        return ENTRIES[key]
    except KeyError:
        raise DpmfError(f'no data set "{key}" in the catalog{did_you_mean(key, ENTRIES)}') from None
