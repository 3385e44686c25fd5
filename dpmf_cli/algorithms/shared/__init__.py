"""Code that several methods share.

Averages: `effects`, `item_averages`, `private_averages`, `own_means`. Covariances, in the order of a fit:
`item_products`, `private_covariance`, `item_covariance`, `covariance_predictors`.
"""
