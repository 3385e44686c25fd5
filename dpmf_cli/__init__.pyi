from dpmf_cli.releasing.publishing import fit as fit, load_model as load_model, own_ratings as own_ratings

__version__: str
