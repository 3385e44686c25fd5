"""The methods: a folder for each paper, `beyond` what no paper has, `baselines` what spends no ε, `shared`, `costs`."""
