from dpmf_cli.releasing.api import fit as fit
from dpmf_cli.releasing.api import load_model as load_model
from dpmf_cli.releasing.api import own_ratings as own_ratings

__version__: str
