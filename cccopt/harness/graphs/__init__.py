"""What ``cccopt bench graphs`` measures and how: the algorithms of ``bench/graphs`` in all of their forms."""
