package braid.internal.cuda.memory;

import braid.internal.resource.Attachment;
import braid.natives.nccl.NcclWindow;

/// What NCCL knows of such memory: its copy-engine collectives take none without it.
public record Window(NcclWindow window) implements Attachment {}
