"""One Gaussian network: its graph, its parameters, inference and structure learning."""
