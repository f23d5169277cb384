package braid.natives.nvml;

/// Path from one GPU to another's memory.
public enum PeerPath {
  NVLINK("NVLink"),
  PCIE("PCIe"),
  NONE("not at all");

  private final String words;

  PeerPath(String words) {
    this.words = words;
  }

  @Override
  public String toString() {
    return words;
  }
}
