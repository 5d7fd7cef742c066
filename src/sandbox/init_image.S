// capgate-init, inside capgate: there is one file to install, and none beside it that could be
// replaced. CMake says where the program is.
    .section .rodata.capgate_init, "a", %progbits
    .globl capgate_init_image
    .balign 16
capgate_init_image:
    .incbin CAPGATE_INIT
    .globl capgate_init_image_end
capgate_init_image_end:
    .section .note.GNU-stack, "", %progbits
