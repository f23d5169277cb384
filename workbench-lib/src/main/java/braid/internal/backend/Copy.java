package braid.internal.backend;

import braid.internal.work.Transfer;
import braid.internal.work.Work;

/// One of several copies that are enqueued together.
public record Copy(Work work, Transfer transfer) {}
