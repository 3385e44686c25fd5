"""McSherry and Mironov 2009: kNN and SVD on a private item-item covariance."""
