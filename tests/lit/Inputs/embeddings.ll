define i32 @square(i32 %x) {
  %y = mul i32 %x, %x
  ret i32 %y
}

define i32 @use(i32 %x) {
  %one = add i32 %x, 1
  %result = call i32 @square(i32 %one)
  ret i32 %result
}

declare void @nothing()
