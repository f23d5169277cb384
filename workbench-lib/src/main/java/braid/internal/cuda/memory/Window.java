package braid.internal.cuda.memory;

import braid.internal.resource.SymmetricMemory;
import braid.natives.nccl.NcclWindow;

/// What NCCL knows of such memory: its copy-engine collectives take none without it.
public record Window(NcclWindow window) implements SymmetricMemory.Attachment {}
