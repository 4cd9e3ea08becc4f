"""An NVIDIA GPU through PyCUDA: load, launch, time."""
