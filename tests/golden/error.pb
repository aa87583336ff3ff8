
+
_error*ValueError: no feature "callee"