"""An embedded training host on one machine: real agent and keeper, a simulated trainer and simulated GPUs."""
