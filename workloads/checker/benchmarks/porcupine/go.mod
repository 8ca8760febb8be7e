module beside

go 1.16

require github.com/anishathalye/porcupine v1.3.1-0.20260626200503-55508eb201b3
