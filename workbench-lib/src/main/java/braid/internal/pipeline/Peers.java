package braid.internal.pipeline;

import braid.model.Place;
import java.util.List;
import java.util.function.BiFunction;
import java.util.function.DoubleFunction;

/// The operations of a pipeline's group that a [Reference] needs.
///
/// @param barrier waits until every member has reached it
/// @param gather exchanges one number per member; returns them by rank, on every member
/// @param gatherAll exchanges numbers under a name; returns those of each rank, on every member
public record Peers(
    Place place,
    Runnable barrier,
    DoubleFunction<double[]> gather,
    BiFunction<String, float[], List<float[]>> gatherAll) {}
