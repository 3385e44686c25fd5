"""A plugin in one file: the median rating of each item, by the exponential mechanism.

An item's median is the allowed rating that has as many of the item's ratings below it as above. How far a candidate
is from that is its loss; changing the value of one rating moves the loss of one item's candidates by 1 at most. Items
are disjoint, so all of them together cost ε (parallel composition).
"""
