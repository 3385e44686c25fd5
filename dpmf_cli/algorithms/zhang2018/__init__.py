"""Zhang, Liu, Chen and Zhong 2018: PMF by objective perturbation, and personalised privacy."""
