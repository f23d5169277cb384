package braid.internal.memory;

/// Events of a group that a rank counts.
public enum Counter {
  /// Meetings at the store of any kind: calls in which ranks waited for all others.
  MEETINGS("meetings"),
  /// Meetings that set up memory: one for each buffer, one for each plan of many bytes, and one for
  /// the board of the group's calls.
  RENDEZVOUS("rendezvous"),
  BUFFERS_ALLOCATED("buffers allocated"),
  /// This rank's part of those buffers.
  BYTES_ALLOCATED("bytes allocated"),
  /// Buffers from the pool, without a meeting.
  BUFFERS_REUSED("buffers reused"),
  PLANS_MADE("plans made"),
  PLANS_REUSED("plans reused"),
  REPLAYS("replays");

  private final String text;

  Counter(String text) {
    this.text = text;
  }

  /// Returns the name in tables.
  public String text() {
    return text;
  }
}
