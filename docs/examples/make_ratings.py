"""Prints made-up ratings of a shop as CSV: 150 customers, 60 articles, each rating 20 of them."""

import random

CUSTOMERS, ARTICLES, EACH = 150, 60, 20

draw = random.Random(1)
quality = [draw.gauss(0, 0.6) for _ in range(ARTICLES)]
print("customer,sku,stars")
for customer in range(CUSTOMERS):
    kindness = draw.gauss(0, 0.5)
    for sku in sorted(draw.sample(range(ARTICLES), EACH)):
        stars = round(3.4 + quality[sku] + kindness + draw.gauss(0, 0.6))
        print(f"c{customer},a{sku},{min(5, max(1, stars))}")
