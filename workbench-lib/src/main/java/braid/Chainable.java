package braid;

/// Something that a [Chain] runs: a pipeline, a collective, or another chain.
public sealed interface Chainable permits Pipeline, CollectiveLink, Chain {
  ProcessGroup group();
}
