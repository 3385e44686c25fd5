"""Code that several methods share. In the order of a fit: averages, then factors, a covariance or a neighbourhood."""
