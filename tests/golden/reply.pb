


out"