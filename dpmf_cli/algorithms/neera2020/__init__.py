"""Neera, Chen, Aslam and Shu 2020: the local model, with a mixture of Gaussians."""
