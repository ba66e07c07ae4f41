#!/bin/bash
# Makes the runs of a planned sweep: a task of this array is a turn, the runs that are compared with each other in pairs.
# A node is a task's alone. A task that is lost may be submitted again: what is made is not made again.
#SBATCH --job-name=bulkhead-@SHORT@
#SBATCH --array=0-@LAST@
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --exclusive
#SBATCH --mem=0
#SBATCH --requeue
#SBATCH --output=@FOLDER@/slurm-%A_%a.log
set -euo pipefail
exec @LAUNCHER@ sweep --run "turn:$SLURM_ARRAY_TASK_ID" @FOLDER@
