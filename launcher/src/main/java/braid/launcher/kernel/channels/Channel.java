package braid.launcher.kernel.channels;

/// A socket of a kernel, by its task in Jupyter's protocol.
public enum Channel {
  SHELL("ROUTER"),
  CONTROL("ROUTER"),
  STDIN("ROUTER"),
  IOPUB("PUB"),
  HEARTBEAT("REP");

  final String socketType;

  Channel(String socketType) {
    this.socketType = socketType;
  }
}
