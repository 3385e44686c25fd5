from dpmf_cli.releasing.publishing import fit as fit
from dpmf_cli.releasing.publishing import load_model as load_model
from dpmf_cli.releasing.publishing import own_ratings as own_ratings

__version__: str
