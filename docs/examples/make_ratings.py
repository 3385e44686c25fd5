"""Prints made-up ratings as CSV: of a shop with 150 customers and 60 articles, 20 ratings by each customer.

With --half-stars the same opinions are of films, from 0.5 to 4 in halves, with semicolons and decimal commas.
"""

import random
import sys

CUSTOMERS, ARTICLES, EACH = 150, 60, 20
HALF_STARS = "--half-stars" in sys.argv

draw = random.Random(1)
quality = [draw.gauss(0, 0.6) for _ in range(ARTICLES)]
print("viewer;film;note" if HALF_STARS else "customer,sku,stars")
for customer in range(CUSTOMERS):
    kindness = draw.gauss(0, 0.5)
    for sku in sorted(draw.sample(range(ARTICLES), EACH)):
        opinion = 3.4 + quality[sku] + kindness + draw.gauss(0, 0.6)
        if HALF_STARS:
            halves = min(8, max(1, round(2 * (0.5 + 3.5 * (opinion - 1) / 4))))
            print(f"c{customer};a{sku};{halves // 2},{5 * (halves % 2)}")
        else:
            print(f"c{customer},a{sku},{min(5, max(1, round(opinion)))}")
