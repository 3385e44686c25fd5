"""Wang and Tang 2017: private neighbourhood models, and posterior sampling."""
