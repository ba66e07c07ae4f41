#!/bin/bash
# Makes a turn of a planned sweep in each task of a Slurm array, with a node to itself: sbatch slurm.sh
#SBATCH --job-name=bulkhead
#SBATCH --array=0-5
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --exclusive
#SBATCH --mem=0
#SBATCH --requeue
set -euo pipefail
exec launcher sweep --run "turn:$SLURM_ARRAY_TASK_ID" /shared/sweep-1
