"""How much a program may use."""

from typing import ClassVar

from pydantic import BaseModel, ConfigDict, NonNegativeFloat, PositiveFloat, PositiveInt

MIB = 2**20


class ProcessLimits(BaseModel):
    """The most that one program, with all that it starts, may use.

    Time and output hold everywhere. Of all processes together, their number and memory are looked at
    fifty times a second, which Linux alone allows; the others are limits of the system for each process
    (setrlimit(2)).
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    wall_clock: PositiveFloat = 60.0
    """Seconds after which it is ended."""
    kill_grace: NonNegativeFloat = 2.0
    """Seconds between SIGTERM and SIGKILL. What passes a limit of memory or processes gets none."""
    kept_output_bytes: PositiveInt = 64 * 1024
    """Of each stream: the first half and the last half of so much are kept."""
    output_bytes: PositiveInt = 256 * MIB
    """Of both streams; a program that writes more is ended."""
    memory_bytes: PositiveInt | None = 2048 * MIB
    """What all processes hold in memory together. Files in the sandbox's ``/tmp`` have a limit apart."""
    processes: PositiveInt = 256
    """How many there may be at once, the program itself included. Inside a sandbox the kernel holds
    this limit too, threads included, unless this process runs as root."""
    cpu_seconds: PositiveInt | None = None
    """For each process."""
    address_space_bytes: PositiveInt | None = None
    """For each process. Many runtimes reserve far more address space than the memory they use."""
    file_bytes: PositiveInt = 1024 * MIB
    """For each file that is written."""
    open_files: PositiveInt = 1024
    """For each process."""
