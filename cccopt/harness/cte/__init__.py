"""What ``cccopt bench cte`` measures and how: the workloads of ``bench/cte`` in all of their builds."""
