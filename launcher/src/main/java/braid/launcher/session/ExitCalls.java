package braid.launcher.session;

import braid.model.BraidException;
import java.lang.classfile.ClassFile;
import java.lang.classfile.ClassTransform;
import java.lang.classfile.CodeElement;
import java.lang.classfile.instruction.InvokeInstruction;
import java.lang.constant.ClassDesc;
import java.lang.constant.ConstantDescs;
import java.lang.constant.MethodTypeDesc;
import jdk.jshell.spi.ExecutionControl.ClassBytecodes;

/// Calls of a `%%front` cell that would end the front's process. They are woven into calls of the
/// methods here, which fail the cell instead. Method references, reflection and libraries are not
/// woven; [braid.launcher.ProcessExit] sees to it that they do not end a run as if it had finished.
@SuppressWarnings("DoNotCallSuggester")
public final class ExitCalls {
  private static final ClassDesc HERE = ClassDesc.of(ExitCalls.class.getName());
  private static final ClassDesc RUNTIME = ClassDesc.of("java.lang.Runtime");

  private ExitCalls() {}

  /// In place of `System.exit`.
  public static void exit(int code) {
    throw refused("System.exit", code);
  }

  /// In place of `Runtime.exit`.
  public static void exit(Runtime runtime, int code) {
    throw refused("Runtime.exit", code);
  }

  /// In place of `Runtime.halt`.
  public static void halt(Runtime runtime, int code) {
    throw refused("Runtime.halt", code);
  }

  private static BraidException refused(String call, int code) {
    return new BraidException(
        "a %%%%front cell must not end the session but called %s(%d); leave it out, or throw an exception"
            .formatted(call, code));
  }

  static ClassBytecodes[] refuse(ClassBytecodes[] classes) {
    var woven = new ClassBytecodes[classes.length];
    for (int i = 0; i < classes.length; i++) {
      woven[i] = new ClassBytecodes(classes[i].name(), refuse(classes[i].bytecodes()));
    }
    return woven;
  }

  private static byte[] refuse(byte[] bytes) {
    var format = ClassFile.of();
    return format.transformClass(
        format.parse(bytes),
        ClassTransform.transformingMethodBodies(
            (code, element) -> {
              switch (replaced(element)) {
                case "System.exit" -> code.invokestatic(HERE, "exit", takes(ConstantDescs.CD_int));
                case "Runtime.exit" ->
                    code.invokestatic(HERE, "exit", takes(RUNTIME, ConstantDescs.CD_int));
                case "Runtime.halt" ->
                    code.invokestatic(HERE, "halt", takes(RUNTIME, ConstantDescs.CD_int));
                default -> code.with(element);
              }
            }));
  }

  private static MethodTypeDesc takes(ClassDesc... parameters) {
    return MethodTypeDesc.of(ConstantDescs.CD_void, parameters);
  }

  /// The method that is called, if its class is one of the two.
  private static String replaced(CodeElement element) {
    if (!(element instanceof InvokeInstruction call)) {
      return "";
    }
    return switch (call.owner().asInternalName()) {
      case "java/lang/System" -> "System." + call.name().stringValue();
      case "java/lang/Runtime" -> "Runtime." + call.name().stringValue();
      default -> "";
    };
  }
}
