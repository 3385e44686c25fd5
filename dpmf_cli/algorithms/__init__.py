"""The methods: a folder for each paper, `beyond` what none has, `baselines` what spends no ε, `shared`, `costs`."""
