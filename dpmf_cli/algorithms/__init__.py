"""The methods: a folder for each paper, `field` for single methods of other papers, `beyond` for methods of no paper,
`baselines` for methods that spend no ε. `shared` has code that several methods share.
"""
