"""A simulated field of the Large Magellanic Cloud that ships as code."""
