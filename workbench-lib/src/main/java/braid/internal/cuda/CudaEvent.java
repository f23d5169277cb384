package braid.internal.cuda;

import braid.internal.backend.Event;
import braid.natives.cuda.GpuEvent;

/// A point in the work of a stream of the GPU.
record CudaEvent(GpuEvent event) implements Event {}
