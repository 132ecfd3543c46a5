"""Run a batch of simulations from the command line: `groundswell simulate`, with all its options.

python3 examples/run_batch_simulation.py \\
    --entities "entity_ids.json" \\
    --context "A panel discussion about climate change solutions" \\
    --interaction-size 2 \\
    --num-simulations 3 \\
    --name "Climate Change Discussions" \\
    --description "Testing how different entities discuss climate solutions" \\
    --n-turns 2 \\
    --simulation-rounds 1

Entities come from the store (`groundswell entities add`, `sample`, `import`) by their ids, or from a file of whole
entities. The model is the embedded one, unless --model names another. The same command again goes on with its run.
"""

from __future__ import annotations

import sys

from groundswell.cli.app import main

if __name__ == "__main__":
    sys.argv[1:1] = ["simulate"]
    main()
