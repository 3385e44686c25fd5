from dpmf_cli.core.errors import DpmfError as DpmfError
from dpmf_cli.releasing.publishing import fit as fit, load_model as load_model, own_ratings as own_ratings
from dpmf_cli.studies.session import advise as advise, run as run

__version__: str

__all__: list[str]
