package braid.internal.pipeline;

import braid.model.Place;
import java.util.function.DoubleFunction;

/// The operations of a pipeline's group that [PlainCollectives] and [Reference] need.
///
/// @param barrier waits until every member has reached it
/// @param gather exchanges one number per member; returns them by rank, on every member
public record Peers(Place place, Runnable barrier, DoubleFunction<double[]> gather) {}
