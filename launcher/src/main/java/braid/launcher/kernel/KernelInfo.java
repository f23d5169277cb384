package braid.launcher.kernel;

import braid.launcher.JavaLanguage;
import braid.launcher.kernel.channels.Message;
import com.google.gson.JsonArray;
import com.google.gson.JsonObject;

/// Content of `kernel_info_reply`.
final class KernelInfo {
  private KernelInfo() {}

  /// @param version Braid's version
  /// @param backend backend of the ranks and the reason for it; empty if they cannot be started
  static JsonObject content(String version, String backend) {
    var java = System.getProperty("java.version", "");
    var content = new JsonObject();
    content.addProperty("protocol_version", Message.PROTOCOL_VERSION);
    content.addProperty("implementation", "braid");
    content.addProperty("implementation_version", version);
    content.add("language_info", JavaLanguage.json());
    content.addProperty(
        "banner",
        "Braid "
            + version
            + ", Java "
            + java
            + (backend.isEmpty() ? "" : ", backend " + backend)
            + ": every cell runs on every rank; %help");
    content.addProperty("debugger", false);
    content.add("supported_features", new JsonArray());
    content.add("help_links", new JsonArray());
    return content;
  }
}
