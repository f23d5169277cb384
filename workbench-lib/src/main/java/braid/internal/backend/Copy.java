package braid.internal.backend;

import braid.internal.work.Transfer;
import braid.internal.work.Work;

/// One of several copies that are enqueued together.
///
/// @param local true if it is within this rank's memory
public record Copy(Work work, Transfer transfer, boolean local) {}
