package braid.launcher.kernel.channels;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Optional;

/// The security of one connection in ZMTP: commands of a handshake, then frames, which CURVE seals.
sealed interface Mechanism permits Mechanism.Null, Curve {
  /// @param answer the command to send
  /// @param properties the client's, once the handshake is complete
  record Step(Optional<ByteBuffer> answer, Optional<ByteBuffer> properties) {}

  /// Name in the greeting.
  String name();

  /// Command that is sent before any of the client's.
  Optional<ByteBuffer> opening();

  /// Takes a command of the handshake.
  ///
  /// @throws IOException if the client must be refused
  Step take(String command, ByteBuffer data) throws IOException;

  /// Bytes between the size of a frame and its content, after the handshake.
  int headBytes();

  /// Takes these bytes of the next frame. Returns its flags, given those outside.
  int openHead(int flags, ByteBuffer head) throws IOException;

  /// Decrypts a part of the frame in place.
  void open(byte[] bytes, int from, int count);

  /// Ends the frame; only now is its content known to be the client's.
  void endFrame() throws IOException;

  /// Returns encoded frames as they are sent.
  ByteBuffer seal(ByteBuffer frames);

  /// Nobody is identified, nothing is encrypted: signatures of messages must do.
  record Null(ByteBuffer ready) implements Mechanism {
    @Override
    public String name() {
      return "NULL";
    }

    @Override
    public Optional<ByteBuffer> opening() {
      return Optional.of(ready);
    }

    @Override
    public Step take(String command, ByteBuffer data) {
      // Other commands are a newer client's.
      return new Step(
          Optional.empty(), command.equals("READY") ? Optional.of(data) : Optional.empty());
    }

    @Override
    public int headBytes() {
      return 0;
    }

    @Override
    public int openHead(int flags, ByteBuffer head) {
      return flags;
    }

    @Override
    public void open(byte[] bytes, int from, int count) {}

    @Override
    public void endFrame() {}

    @Override
    public ByteBuffer seal(ByteBuffer frames) {
      return frames;
    }
  }
}
